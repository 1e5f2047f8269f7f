"""What a program is, from what was seen of it: times, samples and counts in, a characterisation out. Pure."""
