"""The door of a service as it was asked for: a port that is free, keys and a certificate that can be used."""

from __future__ import annotations

import socket
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.runner.submission.serving import ServeOptions
from chipwise.serving.service import ServiceDoor

from .gateway import Door, is_loopback
from .key_file import read_keys


def free_port(host: str = "127.0.0.1", port: int = 0) -> int:
    """A port that nobody listens on; the one that is asked for, where it is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise BadInput(
                f"{host}:{port} cannot be listened on: {error.strerror}.", remedy="Choose another with --port; 0 takes any."
            ) from None
        return int(listener.getsockname()[1])


def service_door(options: ServeOptions) -> ServiceDoor:
    if options.key_file is not None:
        read_keys(Path(options.key_file))
    elif not is_loopback(options.host):
        raise BadInput(
            f"{options.host} can be reached from other machines.",
            remedy="Add --key-file FILE; `chipwise serve key NAME --key-file FILE` makes a key.",
        )
    if (options.certificate is None) != (options.private_key is None):
        raise BadInput("TLS needs a certificate and its private key.", remedy="Give --certificate and --private-key.")
    if options.certificate is not None and options.private_key is not None:
        door = Door(certificate=Path(options.certificate), private_key=Path(options.private_key))
        try:
            door.context()
        except (OSError, ValueError) as error:
            raise BadInput(f"The certificate cannot be used: {error}.", remedy="Give both as PEM files.") from None
    paths = {name: _path(getattr(options, name)) for name in ("key_file", "certificate", "private_key")}
    return ServiceDoor(host=options.host, port=free_port(options.host, options.port), **paths)


def _path(text: str | None) -> str:
    return str(Path(text).absolute()) if text else ""
