// Reads Ray's objects as KubeRay does and checks them with the operator's own rules. Arguments: files of one document each.
package main

import (
	"fmt"
	"os"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	"sigs.k8s.io/yaml"
)

func main() {
	failed := false
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Printf("%s: %v\n", path, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "RayCluster":
		var it rayv1.RayCluster
		if err := yaml.UnmarshalStrict(text, &it); err != nil {
			return err
		}
		if err := utils.ValidateRayClusterMetadata(it.ObjectMeta); err != nil {
			return err
		}
		return utils.ValidateRayClusterSpec(&it.Spec, it.Annotations)
	case "RayJob":
		var it rayv1.RayJob
		if err := yaml.UnmarshalStrict(text, &it); err != nil {
			return err
		}
		if err := utils.ValidateRayJobMetadata(it.ObjectMeta); err != nil {
			return err
		}
		return utils.ValidateRayJobSpec(&it)
	case "RayCronJob":
		var it rayv1.RayCronJob
		if err := yaml.UnmarshalStrict(text, &it); err != nil {
			return err
		}
		return utils.ValidateRayCronJobSpec(&it)
	case "RayService":
		var it rayv1.RayService
		if err := yaml.UnmarshalStrict(text, &it); err != nil {
			return err
		}
		if err := utils.ValidateRayServiceMetadata(it.ObjectMeta); err != nil {
			return err
		}
		return utils.ValidateRayServiceSpec(&it)
	}
	return fmt.Errorf("not of Ray: %q", kind.Kind)
}
