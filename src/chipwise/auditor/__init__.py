"""What a careful engineer would object to in manifests, Terraform, Dockerfiles and Compose files, rule by rule."""
