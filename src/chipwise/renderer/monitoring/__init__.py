"""What is measured of a deployment on a cluster, beside what the plan expects: queries, alerts and a dashboard."""
