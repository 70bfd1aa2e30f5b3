"""
Programs on a node in place of what has no meaning on one computer, or needs the internet.

``stand_ins.yaml`` lists each with its reason. They support the usage of AWS's lifecycle scripts and reject the rest: a
stand-in more tolerant than the real program would hide a fault. They use the node's Python, standard library only.
"""
