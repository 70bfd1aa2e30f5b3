"""Units and settings of the other services of a node. Texts only."""

MUNGE = """\
[Unit]
Description=MUNGE authentication service
Documentation=man:munged(8)
Wants=network-online.target
After=network-online.target time-sync.target

[Service]
Type=forking
EnvironmentFile=-/etc/default/munge
ExecStart=/usr/sbin/munged $OPTIONS
PIDFile=/run/munge/munged.pid
RuntimeDirectory=munge
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
User=munge
Group=munge
Restart=on-abort

[Install]
WantedBy=multi-user.target
"""

MARIADB = """\
[Unit]
Description=MariaDB database server
Documentation=man:mariadbd(8)
After=network.target

[Service]
Type=notify
User=mysql
Group=mysql
RuntimeDirectory=mysqld
RuntimeDirectoryMode=0755
# A new database takes half a second; the AMI has one from its package's installation.
ExecStartPre=/bin/sh -c '[ -d /var/lib/mysql/mysql ] || mariadb-install-db --skip-test-db > /dev/null'
ExecStart=/usr/sbin/mariadbd $MYSQLD_OPTS
KillSignal=SIGTERM
SendSIGKILL=no
Restart=on-abnormal
RestartSec=5s
UMask=007
TimeoutStartSec=900
TimeoutStopSec=900
LimitNOFILE=32768

[Install]
WantedBy=multi-user.target
Alias=mysql.service
Alias=mysqld.service
"""
"""After Debian's mariadb.service of 10.11."""

MARIADB_SOCKET = "/run/mysqld/mysqld.sock"
"""Of Ubuntu's packages, set for server, client and slurmdbd: the machine's packages may differ."""

MARIADB_FILES = f"""\
[client-server]
socket = {MARIADB_SOCKET}

!includedir /etc/mysql/conf.d/
!includedir /etc/mysql/mariadb.conf.d/
"""
"""/etc/mysql/my.cnf as Debian's and Ubuntu's mariadb-common has it; what the machine has there is hidden."""

MARIADB_SETTINGS = """\
[mariadbd]
user = mysql
datadir = /var/lib/mysql
pid_file = /run/mysqld/mysqld.pid
bind_address = 127.0.0.1
skip_name_resolve = 0
performance_schema = off
innodb_buffer_pool_size = 24M
innodb_log_file_size = 8M
innodb_lock_wait_timeout = 900
innodb_data_file_path = ibdata1:3M:autoextend
innodb_autoextend_increment = 1
innodb_use_native_aio = 0
innodb_flush_log_at_trx_commit = 2
key_buffer_size = 1M
aria_pagecache_buffer_size = 8M
max_connections = 40
"""

SSH = """\
[Unit]
Description=OpenBSD Secure Shell server
Documentation=man:sshd(8) man:sshd_config(5)
After=network.target
ConditionPathExists=!/etc/ssh/sshd_not_to_be_run

[Service]
Type=notify
EnvironmentFile=-/etc/default/ssh
ExecStartPre=/usr/sbin/sshd -t
# Any job of ubuntu reaches it with ubuntu's key, and is not to become root by it.
ExecStart=/usr/bin/setpriv --no-new-privs -- /usr/sbin/sshd -D $SSHD_OPTS
ExecReload=/usr/sbin/sshd -t
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
Restart=on-failure
RestartPreventExitStatus=255
RuntimeDirectory=sshd
RuntimeDirectoryMode=0755

[Install]
WantedBy=multi-user.target
Alias=sshd.service
"""

SSHD_SETTINGS = """\
Include /etc/ssh/sshd_config.d/*.conf
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM yes
X11Forwarding no
PrintMotd no
UseDNS no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
"""
SSH_SETTINGS = "Include /etc/ssh/ssh_config.d/*.conf\n\nHost *\n    SendEnv LANG LC_*\n"

# No container engine runs in a node; scripts ask whether these two services do.
SSH_BETWEEN_NODES = """\
Host ip-* localhost 127.0.0.1
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""
"""Nodes come and go under the same names, so their keys are not remembered; AWS's scripts write a file of this name."""

DOCKER = """\
[Unit]
Description=Docker Application Container Engine
After=network-online.target containerd.service
Wants=network-online.target

[Service]
Type=simple
ExecStart=/bin/sleep infinity
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""

CONTAINERD = """\
[Unit]
Description=containerd container runtime
After=network.target

[Service]
Type=simple
ExecStart=/bin/sleep infinity
KillMode=process
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""

KUBELET = """\
[Unit]
Description=Kubernetes Kubelet
After=containerd.service
ConditionPathExists=/usr/bin/kubelet

[Service]
ExecStart=/usr/bin/kubelet $KUBELET_ARGS
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""

DLAMI_NVME = """\
[Unit]
Description=Mount of the instance store
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true

[Install]
WantedBy=multi-user.target
"""
"""AWS's scripts wait for it to be active with status 0; that it is a oneshot is assumed."""

OS_RELEASE = {
    "slurm": """\
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
""",
    "eks": """\
NAME="Amazon Linux"
VERSION="2023"
ID="amzn"
ID_LIKE="fedora"
VERSION_ID="2023"
PLATFORM_ID="platform:al2023"
PRETTY_NAME="Amazon Linux 2023"
""",
}
"""Scripts decide by it (``source /etc/os-release``). The packages below it are this machine's."""

PROFILE = """\
# /etc/profile of Ubuntu 22.04: it leaves PATH as it is, so that a login shell in a job keeps the job's.
if [ -d /etc/profile.d ]; then
  for i in /etc/profile.d/*.sh; do
    if [ -r "$i" ]; then
      . "$i"
    fi
  done
  unset i
fi
"""

ENVIRONMENT = 'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games"\n'
"""/etc/environment of Ubuntu: where PAM's sessions have their PATH from."""

LSB_RELEASE = """\
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE=22.04
DISTRIB_CODENAME=jammy
DISTRIB_DESCRIPTION="Ubuntu 22.04.5 LTS"
"""

SYSUSERS = """\
# sysusers.d(5): accounts of HyperPod's image that this machine may lack.
g docker 896
u mysql 897 "MySQL Server" /nonexistent /bin/false
m ubuntu docker
"""
