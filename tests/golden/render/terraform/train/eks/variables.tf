# What the plan cannot know. Those without a default must be given.

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "eu-north-1"
}

variable "cluster_name" {
  description = "The EKS cluster that the machines join."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of the cluster for the machines. One only: machines that work together are in one zone."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) == 1
    error_message = "Give one subnet: a placement group is in one zone."
  }
}
