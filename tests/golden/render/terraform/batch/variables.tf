# What the plan cannot know. Those without a default must be given.

variable "project" {
  description = "Project that pays."
  type        = string
}

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "us-central1"
}

variable "zone" {
  description = "Zone of the region that has g2-standard-48."
  type        = string
}

variable "subnetwork" {
  description = "Subnetwork with a way out (Cloud NAT): the machines have no public address."
  type        = string
}

variable "image" {
  description = "Container image that the machines run."
  type        = string
  default     = "vllm/vllm-openai:v0.32.0"
}

variable "boot_image" {
  description = "What the machines boot from. Pin an image of the family for production."
  type        = string
  default     = "projects/ml-images/global/images/family/common-cu129-ubuntu-2204-nvidia-580"
}
