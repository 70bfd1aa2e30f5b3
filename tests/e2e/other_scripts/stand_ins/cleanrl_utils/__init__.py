"""Stand-in of the part of cleanrl_utils that needs other packages."""
