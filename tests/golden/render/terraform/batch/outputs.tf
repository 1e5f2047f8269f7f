output "machines" {
  description = "The group of machines."
  value       = google_compute_instance_group_manager.machines.instance_group
}

output "bucket" {
  description = "What outlives the machines."
  value       = google_storage_bucket.work.url
}
