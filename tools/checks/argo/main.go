// Reads workflows as Argo's controller does and checks them with its own rules. Arguments: files of one document each.
package main

import (
	"context"
	"fmt"
	"os"

	wfv1 "github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v3/workflow/validate"
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
	case "Workflow":
		var wf wfv1.Workflow
		if err := yaml.UnmarshalStrict(text, &wf); err != nil {
			return err
		}
		return validate.ValidateWorkflow(nil, nil, &wf, nil, validate.ValidateOpts{Lint: true})
	case "CronWorkflow":
		var cron wfv1.CronWorkflow
		if err := yaml.UnmarshalStrict(text, &cron); err != nil {
			return err
		}
		return validate.ValidateCronWorkflow(context.Background(), nil, nil, &cron, nil)
	}
	return fmt.Errorf("neither Workflow nor CronWorkflow: %q", kind.Kind)
}
