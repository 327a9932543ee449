"""What models and optimisers have in PyTorch and Keras, and what to write here."""

MODEL = {
    "parameters": "the parameters, by name, are model.params",
    "named_parameters": "the parameters, by name, are model.params",
    "weights": "the parameters, by name, are model.params",
    "state_dict": "the parameters, by name, are model.params; model.save(path) writes them",
    "load_state_dict": "assign model.params, or read a file: relay.load_model(f, path)",
    "eval": "a call of a model does not train; model(x, training=True) does",
    "train": "relay.fit(model, loss, data) trains; model(x, training=True) runs layers as in training",
    "fit": "write relay.fit(model, loss, data)",
    "predict": "call it: model(x), or relay.vmap(model)(xs)",
    "compile": "it is compiled when it is called; relay.fit takes the loss and the optimizer",
    "evaluate": "write relay.evaluate(model, metric, data)",
    "forward": "call it: model(x)",
    "zero_grad": "gradients are values here, and nothing keeps them",
    "to": "arrays are in memory, in the dtypes of the annotations",
    "cuda": "arrays are in memory",
    "cpu": "arrays are in memory already",
    "half": "write relay.fit(..., precision='bfloat16')",
}
OPTIMISER = {
    "zero_grad": "gradients are values here, and nothing keeps them",
    "param_groups": "the learning rate is .lr; a schedule may take its place: lr=relay.optim.schedules.cosine(...)",
    "state_dict": "its state, by name, is .state()",
}

__all__ = ["MODEL", "OPTIMISER"]
