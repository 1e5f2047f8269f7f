"""Parts of the `ec2` engine: what it asks of AWS, what a machine does when it comes up, and how what is there is read."""
