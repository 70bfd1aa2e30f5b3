# Two commands matter: `make up` shows the whole product, `make test` passes the tests. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: always help setup system monitoring up up-eks down test tests tests-definition tests-units tests-integration \
	lint quick unit integration e2e gpu bench lock schema docs clean

VENV := .venv
PYTHON := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# The CDK's modules are large: without cached bytecode every synth would compile them again.
unexport PYTHONDONTWRITEBYTECODE
SLURM := slurmctld slurmd slurm-client slurmdbd slurm-wlm-mysql-plugin munge mariadb-server-core mariadb-client \
	iproute2 util-linux
# What kube-proxy writes its rules with, in the nodes of an EKS cluster; what the packages are signed with that it is of.
KUBERNETES := iptables debian-archive-keyring
# What HyperPod's image has and scripts count on; what srun --container-image is made of.
IMAGE := openssh-server openssh-client sudo jq curl rsync expect apg gettext-base unzip procps
# What srun --mpi=pmix and mpirun are; Slurm's plugin opens libpmix.so by that name.
MPI := openmpi-bin libopenmpi-dev libpmix-dev
CONTAINERS := gcc libc6-dev libslurm-dev runc squashfs-tools
# What judges our metrics and alert rules.
MONITORING := prometheus prometheus-alertmanager
# A test that no signal ends: its worker ends, and with it the run, since xdist would give that test to the next worker.
STUCK := --max-worker-restart 0 -o faulthandler_timeout=660 -o faulthandler_exit_on_timeout=true
# Three runs of about the same CPU time, side by side with lint: a run collects and imports its own files only.
DEFINITION := tests/snapshot $(addprefix tests/unit/,constructs importing repository stacks updates validation)
OTHER_UNITS := $(filter-out $(DEFINITION),$(wildcard tests/unit/*))
# What benchmarks start and share is no benchmark.
BENCHMARKS ?= $(filter-out %_program.py %workload.py,$(wildcard benchmarks/*.py))

help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: system $(VENV)/.torch $(VENV)/.aws-cli node_modules/.package-lock.json ## install what the product needs, all of it in this folder but Slurm

# Looked at each time: an upgrade of the machine's Python leaves an environment that does not run.
$(VENV)/.made: always
	@scripts/make_environment.sh $(VENV)

$(VENV)/.installed: $(VENV)/.made requirements-dev.txt pyproject.toml
	@$(PYTHON) scripts/install_packages.py packages
	@$(PYTHON) scripts/link_packages.py
	@touch $@

$(VENV)/.torch: $(VENV)/.installed examples/bytelm/requirements.txt tests/requirements-torch.txt
	@$(PYTHON) scripts/install_packages.py torch
	@touch $@

$(VENV)/.aws-cli: $(VENV)/.installed requirements-aws-cli.txt
	@$(PYTHON) scripts/install_packages.py aws-cli
	@touch $@

# npm would leave compiled code in /tmp.
node_modules/.package-lock.json: package-lock.json $(VENV)/.installed
	@echo "installing the CDK CLI"
	@NODE_DISABLE_COMPILE_CACHE=1 npm ci --silent --no-audit --no-fund
	@touch $@

system: $(VENV)/.made ## install Slurm and munge when they are missing and apt is there
	@scripts/install_slurm.sh $(SLURM) $(KUBERNETES) $(IMAGE) $(MPI) $(CONTAINERS)

monitoring: ## install Prometheus and its Alertmanager, with which metrics and alert rules are tested
	@scripts/install_monitoring.sh $(MONITORING)

# What a cluster cannot run on is refused before anything is downloaded.
up up-eks: export FOR_CLUSTER := yes

up: setup ## the main job: deploy, boot, train, break a node, recover; leaves the cluster up
	@$(VENV)/bin/holdfast up local --rehearse examples/bytelm/bytelm.sbatch \
		--rehearse examples/bytelm/bytelm-resilient.sbatch --prepare examples/bytelm/prepare.py

up-eks: setup ## the same under Kubernetes, whose binaries are built once; leaves the cluster up
	@test "$$($(VENV)/bin/holdfast kubernetes show --json)" != null || $(VENV)/bin/holdfast kubernetes build --for local-eks
	@$(VENV)/bin/holdfast up local-eks --rehearse examples/bytelm/bytelm-operator.yaml \
		--prepare examples/bytelm/prepare.py

down: $(VENV)/.installed ## remove everything that `make up` or `make up-eks` made
	@$(VENV)/bin/holdfast down

test: setup monitoring ## what has to pass: style, types, floors, unit, snapshot and integration tests
	@echo "lint and three runs of tests; each is shown when it has ended"
	@$(MAKE) --no-print-directory --output-sync=target -j 4 lint tests

tests: tests-integration tests-definition tests-units

tests-integration: $(VENV)/.torch
	@env -u MAKEFLAGS $(PYTHON) -m pytest -q --numprocesses 2 --dist loadfile --no-loadscope-reorder $(STUCK) \
		tests/gpu tests/integration

tests-definition: $(VENV)/.torch
	@env -u MAKEFLAGS $(PYTHON) -m pytest -q $(STUCK) $(DEFINITION)

tests-units: $(VENV)/.torch
	@env -u MAKEFLAGS $(PYTHON) -m pytest -q $(STUCK) $(OTHER_UNITS)

lint: $(VENV)/.torch
	@ruff check .
	@ruff format --check --quiet .
	@lint-imports --no-cache
	@vermin --quiet --no-tips --violations --target=3.9- lifecycle containers/common containers/health-agent
	@vermin --quiet --no-tips --violations --target=3.10- containers/training examples
	@shellcheck scripts/*.sh holdfast/localcloud/*/*.sh lifecycle/*.sh examples/*/*.sbatch .ci/run
	@mypy
	@mypy benchmarks/*.py benchmarks/peers/*.py

quick: $(VENV)/.torch ## the unit tests that a change touches: packages with files that differ from HEAD, and what depends on them
	@$(PYTHON) scripts/quick.py

unit: setup ## the tests that need nothing but Python
	@$(PYTHON) -m pytest -q tests/unit

integration: setup ## the tests with real parts: moto, Slurm, gloo processes
	@$(PYTHON) -m pytest -q tests/integration

e2e: setup ## the long tests, in parts that resume (make e2e PART="strikes kills-sharded-2"); all of them take hours
	@$(PYTHON) scripts/run_parts.py $(if $(PART),$(PART),--list)
	@$(if $(PART),true,$(PYTHON) scripts/run_parts.py)

gpu: $(VENV)/.torch ## checks of the runtime on one GPU, eight minutes at most; ONLY="T3 T4" for some of them
	@failed=; for each in collectives training; do \
		$(PYTHON) tests/gpu/one/$$each.py $(if $(ONLY),--only $(ONLY)) || failed=yes; done; test -z "$$failed"

bench: setup ## side-by-side measurements, all or those of BENCHMARKS="benchmarks/check.py ..."
	@failed=; for each in $(BENCHMARKS); do echo "== $$each"; $(PYTHON) $$each || failed="$$failed $$each"; done; \
		test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

lock: $(VENV)/.installed ## pin all dependencies again, with hashes
	@uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements.txt
	@uv pip compile -q --python-version 3.11 --generate-hashes --no-header --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	@echo 'awscli>=1.46,<2' | uv pip compile -q --upgrade --generate-hashes --no-header --universal \
		--python-version 3.11 - -o requirements-aws-cli.txt
	@printf 'cyclonedx-bom\nsetuptools>=77.0.3\ntwine\n' | uv pip compile -q --upgrade --generate-hashes --no-header --universal \
		--python-version 3.11 - -o requirements-release.txt

schema: $(VENV)/.installed ## write docs/environment.schema.json and docs/public-api.txt from the code
	@$(PYTHON) -m holdfast.config > docs/environment.schema.json.new
	@mv docs/environment.schema.json.new docs/environment.schema.json
	@$(PYTHON) scripts/public_api.py

docs: $(VENV)/.installed ## build the documentation site into build/docs/site; a broken link or code reference fails
	@$(PYTHON) scripts/build_site.py

clean: ## remove what setup and the tools made here
	@rm -rf $(VENV) node_modules cdk.out build .mypy_cache .ruff_cache .pytest_cache
