"""
Programs that answer on a node in place of what has no meaning on one computer, or would need the internet.

Each is listed in ``stand_ins.yaml`` with what it answers and why. They do what they say where that is possible, know
the usage of AWS's lifecycle scripts and no more, and refuse the rest: a stand-in kinder than the real program would
hide a fault. They run on the node's own Python with the standard library alone.
"""
