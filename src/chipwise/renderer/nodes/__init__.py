"""Nodes of an EKS cluster, as Karpenter and eksctl make them: what both say of a machine and of the cluster it joins."""
