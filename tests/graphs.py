"""Graphs of traced functions."""


def live_operations(graph):
    """The operations that the outputs of a function, or its effects, depend on."""
    waiting = [tensor.op for tensor in graph.outputs] + list(graph.control_outputs)
    found = {}
    while waiting:
        op = waiting.pop()
        if op.name not in found:
            found[op.name] = op
            waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return list(found.values())
