"""ONNX models as functions of the compiler.

    model.onnx  --protobuf-->  ModelProto  --loading-->  nodes, tensors  --writing-->  a function in the language
                --inference, with the table of operators-->  a typed graph, as of any other function

`loading` reads and checks the file, `writing` turns its graph into the text of a Python function in which every node is a call
(`y = Conv(x, w, strides=(2, 2), node='conv1')`) and control flow is Python's, and `table` says what such a call means: a rule
on staged values for each operator and range of versions, in `operators`. `model` makes the callable.
"""
