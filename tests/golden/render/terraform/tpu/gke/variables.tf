# What the plan cannot know. Those without a default must be given.

variable "project" {
  description = "Project that pays."
  type        = string
}

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "europe-west4"
}

variable "cluster" {
  description = "The GKE cluster that the machines join."
  type        = string
}

variable "zones" {
  description = "Zones of the region that have the machines. One only: machines that work together are in one zone."
  type        = list(string)
}
