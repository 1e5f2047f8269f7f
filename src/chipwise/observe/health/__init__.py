"""Whether devices are well: what drivers, kernel logs and clusters report in, a verdict per device and actions out. Pure."""
