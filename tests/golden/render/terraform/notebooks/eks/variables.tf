# What the plan cannot know. Those without a default must be given.

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "eu-central-1"
}

variable "cluster_name" {
  description = "The EKS cluster that the machines join."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of the cluster for the machines."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "Give at least one subnet."
  }
}
