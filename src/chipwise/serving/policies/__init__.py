"""One file per routing policy. The file's name is the policy's; it defines `policy(draw) -> Policy` and `ABOUT`, one line."""
