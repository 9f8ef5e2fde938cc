"""The error of the stand-in itself, as opposed to the errors that the device it stands for would raise."""


class StandinError(Exception):
    """The stand-in cannot answer, or the installed torch is not the one that it knows.

    Not a RuntimeError: code under test that catches what torch raises must not swallow it.
    """
