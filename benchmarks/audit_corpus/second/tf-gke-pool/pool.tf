resource "google_container_node_pool" "l4" {
  name     = "l4-serving"
  cluster  = var.cluster
  location = "us-central1"

  autoscaling {
    min_node_count = 0
    max_node_count = 8
  }

  node_config {
    machine_type = "g2-standard-24"
    disk_size_gb = 200
    disk_type    = "pd-balanced"

    guest_accelerator {
      type  = "nvidia-tesla-t4" #! machine-accelerator
      count = 2
      gpu_driver_installation_config {
        gpu_driver_version = "DEFAULT"
      }
    }

    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
    shielded_instance_config {
      enable_secure_boot = true
    }
    taint {
      key    = "nvidia.com/gpu"
      value  = "present"
      effect = "NO_SCHEDULE"
    }
  }
}

resource "google_service_account" "nodes" {
  account_id = "l4-nodes"
}

resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/owner" #! broad-rights
  member  = "serviceAccount:${google_service_account.nodes.email}"
}

resource "google_compute_firewall" "ssh" {
  name    = "allow-ssh"
  network = var.network
  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
  source_ranges = ["0.0.0.0/0"] #! open-network
}

variable "cluster" { type = string }
variable "project" { type = string }
variable "network" { type = string }
