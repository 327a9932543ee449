"""`train`: train the example model, or a model of a file."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from .arguments import UsageError, load, load_module, named

DATASETS = ("auto", "mnist", "fashion_mnist", "digits")
DEFAULT_EPOCHS = {"mnist": 3, "fashion_mnist": 5, "digits": 20}
OPTIMISERS = ("adam", "adamw", "sgd", "momentum", "rmsprop", "adagrad", "lion", "lamb")
LOSS_NAMES = ("cross_entropy", "mse")


@dataclass
class Job:
    """What is to be trained.

    Attributes:
        title: of the model and its data.
        model: the model function.
        loss: of one example.
        data: to train on.
        epochs: by default.
        test: data to test on, or None.
        metrics: for `relay.fit`.
        accuracy: `(model, data) -> number`, measured at the end, or None.
    """

    title: str
    model: Any
    loss: Any
    data: Any
    epochs: int
    test: Any = None
    metrics: dict[str, Any] = field(default_factory=dict)
    accuracy: Any = None


@click.command()
@click.argument("model", metavar="lenet|FILE.py:MODEL")
@click.option(
    "--data",
    metavar="DATA",
    help="mnist, fashion_mnist or digits; for a model of a file also a .npz file of arrays, or NAME or FILE.py:NAME of data or "
    "of a function that returns them. By default `data` of the file; for lenet mnist if it can be had, else digits.",
)
@click.option("--validation", metavar="DATA", help="Data to measure on after each epoch.")
@click.option(
    "--loss", metavar="NAME", help="A function of the file, cross_entropy or mse (default: `loss` of the file)."
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A function of the file, measured after each epoch; may be repeated.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Passes over the data (default: 3 of mnist, 20 of digits, 1 of other data).",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Examples in a step.")
@click.option("--optimizer", type=click.Choice(OPTIMISERS), default="adam", show_default=True, help="The optimiser.")
@click.option("--lr", type=float, default=1e-3, show_default=True, help="Its step size.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the parameters and of the order.")
@click.option("--precision", type=click.Choice(["bfloat16"]), help="Of the operands of products.")
@click.option("--early-stopping", type=click.IntRange(min=1), metavar="N", help="End after N epochs without progress.")
@click.option("--target", help="What to compile for, as @relay(target=...) takes it (default: cpu).")
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Write the parameters (safetensors).")
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Keep the state of the run there. The same command goes on where a run was interrupted.",
)
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write a row for each epoch.")
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="FOLDER", help="Write a log for TensorBoard.")
def command(model: str, **options: Any) -> None:
    """Train lenet, or a model of a file.

    lenet is figure 4 of the Relay paper. The model of a file is a @relay_model function; its loss is a @relay function of one
    example, as relay.fit takes it.
    """
    job = _lenet(options["data"]) if model == "lenet" else _of_file(model, options)
    _train(job, options)


def _lenet(data: str | None) -> Job:
    """The example model, and data for it.

    Raises:
        click.BadParameter: there are no such data.
    """
    if data is not None and data not in DATASETS:
        raise click.BadParameter(f"{data!r} is none of {', '.join(DATASETS)}", param_hint="--data")
    name, train, test = choose_data(data or "auto")
    from ..model import lenet as program

    title = f"LeNet on {name}: {len(train):,} images to train, {len(test):,} to test"
    epochs = DEFAULT_EPOCHS[name]
    return Job(title, program.lenet, program.loss, train, epochs, test, accuracy=program.accuracy)


def _named_loss(name: str, model: Any) -> Any:
    """A loss of `LOSS_NAMES`, of one example."""
    from myia_relay import relay

    @relay
    def cross_entropy(x, y):
        return relay.softmax_cross_entropy(model(x), y)

    @relay
    def mse(x, y):
        return relay.mse_loss(model(x), y)

    return mse if name == "mse" else cross_entropy


def _of_file(text: str, options: dict[str, Any]) -> Job:
    """A model of a file.

    Raises:
        click.BadParameter: the text does not name one.
        UsageError: the file lacks something.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise click.BadParameter(f"{text!r} is neither lenet nor FILE.py:MODEL", param_hint="MODEL")
    module = load_module(file)
    model, loss = named(module, file, name), options["loss"] or "loss"
    if hasattr(module, loss):
        loss = getattr(module, loss)
    elif loss in LOSS_NAMES:
        loss = _named_loss(loss, model)
    else:
        raise UsageError(
            f"{file} has no function {loss!r} of one example; write one, or say --loss cross_entropy or mse"
        )
    wanted = options["data"] or ("data" if hasattr(module, "data") else None)
    if wanted is None:
        raise UsageError(f"{file} has no 'data'; say --data digits, --data FILE.npz or --data NAME")
    data, test = _data_of(module, file, wanted)
    if options["validation"]:
        test, _ = _data_of(module, file, options["validation"])
    names = options["metrics"] or [n for n in ("accuracy",) if hasattr(getattr(module, n, None), "explain")]
    return Job(
        f"{name} on {wanted}",
        model,
        loss,
        data,
        DEFAULT_EPOCHS.get(wanted, 1),
        test,
        {metric: named(module, file, metric) for metric in names},
    )


def _data_of(module: Any, file: str, text: str) -> tuple[Any, Any]:
    """Data that the command line names, and data to test on where there are any."""
    if text in DATASETS:
        return choose_data(text)[1:]
    if text.endswith(".npz"):
        import numpy as np

        with np.load(text, allow_pickle=False) as arrays:
            return tuple(arrays[name] for name in arrays.files), None
    found = load(text) if ":" in text else named(module, file, text)
    return found() if callable(found) else found, None


def _train(job: Job, options: dict[str, Any]) -> None:
    """Train, report loss, accuracy and speed, and write what is asked for.

    Raises:
        KeyboardInterrupt: on Ctrl-C.
    """
    from myia_relay import relay

    epochs, size, rate = options["epochs"] or job.epochs, options["batch_size"], options["lr"]
    print(f"{job.title}; {epochs} epochs, batches of {size}, {options['optimizer'].capitalize()} {rate:g}", flush=True)
    model = relay.create_model(job.model, seed=options["seed"])
    loss = relay(target=options["target"])(job.loss.__wrapped__) if options["target"] else job.loss
    more: dict[str, Any] = {}
    if job.accuracy is None:
        more = {"metrics": job.metrics, "validation_data": job.test}
    elif options["log"] or options["tensorboard"] or options["early_stopping"]:
        more = {"validation_data": job.test}
    callbacks = [relay.CSVLogger(options["log"])] if options["log"] else []
    callbacks += [relay.TensorBoard(options["tensorboard"])] if options["tensorboard"] else []
    more |= {"checkpoint": options["resume"]} if options["resume"] else {}
    more |= {name: options[name] for name in ("precision", "early_stopping") if options[name] is not None}
    start = time.perf_counter()
    try:
        history = relay.fit(
            model,
            loss,
            job.data,
            epochs=epochs,
            batch_size=size,
            optimizer=getattr(relay.optim, options["optimizer"])(model, lr=rate),
            shuffle=True,
            seed=options["seed"],
            **({"callbacks": callbacks} if callbacks else {}),
            **more,
        )
    except KeyboardInterrupt:
        if options["resume"]:
            raise KeyboardInterrupt("the same command goes on from here") from None
        raise
    seconds = time.perf_counter() - start
    if not history.steps:
        return
    last = history["loss"][-1] if "loss" in history.columns() else history.losses[-1]
    print(f"loss           {last:.4f} (first step {history.losses[0]:.4f})")
    if job.accuracy is not None:
        print(f"test accuracy  {100 * job.accuracy(model, job.test):.2f} %")
    else:
        for name in history.columns():
            if name not in ("epoch", "loss", "seconds", "steps"):
                print(f"{name:<14} {history[name][-1]:.4g}")
    _report_speed(job, history, epochs, seconds, bool(options["resume"]))
    if options["save"]:
        model.save(options["save"])
        print(f"saved          {options['save']}")


def _report_speed(job: Job, history: Any, epochs: int, seconds: float, resumed: bool) -> None:
    """Print the speed of a run that was not partly made before."""
    if resumed:
        print(f"time           {seconds:.1f} s in this process, compiling included")
        return
    speed = f"{history.steps / seconds:,.0f} steps/s"
    if job.accuracy is not None:
        speed += f", {epochs * len(job.data) / seconds:,.0f} images/s"
    print(f"speed          {speed} ({seconds:.1f} s in all, compiling included)")


def choose_data(wanted: str) -> tuple[str, Any, Any]:
    """The dataset to train on; prints in one line why it is not MNIST, if the user did not choose.

    Returns:
        Its name, the part to train on, and the part to test on.
    """
    from ..model import datasets

    if wanted != "auto":
        return wanted, *getattr(datasets, wanted)()
    try:
        return "mnist", *datasets.mnist()
    except datasets.DatasetError as error:
        reason = str(error).splitlines()[0].partition(" Tried:")[0].rstrip(". ")
        print(f"no MNIST here ({reason}): using digits, part of the package")
        return "digits", *datasets.digits()
