# What the machines may do: no more than their script does.

resource "google_service_account" "machines" {
  account_id   = substr(local.name, 0, 28)
  display_name = "Machines of ${local.name}"
}

resource "google_project_iam_member" "logs" {
  project = var.project
  role    = "roles/logging.logWriter"
  member  = "serviceAccount:${google_service_account.machines.email}"
}

# The place of data that the workload names.
resource "google_storage_bucket_iam_member" "named_0" {
  bucket = "archive"
  role   = "roles/storage.objectUser"
  member = "serviceAccount:${google_service_account.machines.email}"
}

resource "google_storage_bucket_iam_member" "work" {
  bucket = google_storage_bucket.work.name
  role   = "roles/storage.objectUser"
  member = "serviceAccount:${google_service_account.machines.email}"
}

# A machine whose work is done takes itself out of its group.
resource "google_project_iam_custom_role" "leave" {
  role_id     = replace("${local.name}_leave", "-", "_")
  title       = "${local.name}: leave the group"
  permissions = ["compute.instanceGroupManagers.get", "compute.instanceGroupManagers.update"]
}

resource "google_project_iam_member" "leave" {
  project = var.project
  role    = google_project_iam_custom_role.leave.id
  member  = "serviceAccount:${google_service_account.machines.email}"
}
