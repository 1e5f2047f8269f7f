"""The day on which tests take place: prices age, and what passed yesterday must pass tomorrow."""

TODAY = "2026-11-15"
