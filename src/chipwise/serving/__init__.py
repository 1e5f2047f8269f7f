"""A plan as a service: where a request goes, whether it is let in, what was seen. Pure; the doors are in `adapters/http`."""
