"""
``holdfast-run``: one launcher per node starts the ranks and replaces what breaks. Never imports torch.

``_launcher`` connects the parts: ``_processes`` and ``_zygote`` (forks, deaths), ``_slots`` (what processes say),
``_links`` (other launchers), ``_agreement`` (which view follows), ``_shared_keys`` (the store), ``_report`` (status).
"""
