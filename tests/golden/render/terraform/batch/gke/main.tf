# archive-summaries: batch on 4 x g2-standard-48 (gcp us-central1, spot). Written by chipwise from the plan.
# A node pool for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.
# Expected: 9 d (7 d to 12 d), $3,120.00, 480.0 kg CO2e.

locals {
  name = "archive-summaries"
  labels = {
    chipwise-deployment = "archive-summaries"
    team                = "search"
  }
}

resource "google_service_account" "nodes" {
  account_id   = "${substr(local.name, 0, 22)}-nodes"
  display_name = "Nodes of ${local.name}"
}

# What every node needs. Rights of the program belong to its own service account (Workload Identity).
resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/container.defaultNodeServiceAccount"
  member  = "serviceAccount:${google_service_account.nodes.email}"
}

resource "google_container_node_pool" "this" {
  name           = substr(local.name, 0, 39)
  cluster        = var.cluster
  location       = var.region
  node_locations = var.zones

  autoscaling {
    # Nothing is paid for while no job runs.
    total_min_node_count = 0
    total_max_node_count = 4
    location_policy      = "ANY"
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  node_config {
    machine_type    = "g2-standard-48"
    spot            = true
    disk_size_gb    = 200
    disk_type       = "pd-balanced"
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    labels = {
      chipwise-deployment = "archive-summaries"
    }
    metadata = {
      disable-legacy-endpoints = "true"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      # Pods do not reach the node's credentials.
      mode = "GKE_METADATA"
    }

    gvnic {
      enabled = true
    }

    # GKE taints such nodes by itself with nvidia.com/gpu.
    guest_accelerator {
      type  = "nvidia-l4"
      count = 4

      gpu_driver_installation_config {
        # GKE installs it; 580 or newer is needed.
        gpu_driver_version = "LATEST"
      }
    }
  }
}
