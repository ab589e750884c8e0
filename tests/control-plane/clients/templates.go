package main

import (
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

func labelSelector(app string) *metaapply.LabelSelectorApplyConfiguration {
	return metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": app})
}

func podTemplate(app string) *coreapply.PodTemplateSpecApplyConfiguration {
	container := coreapply.Container().WithName("c").WithImage("i")
	return coreapply.PodTemplateSpec().
		WithLabels(map[string]string{"app": app}).
		WithSpec(coreapply.PodSpec().WithContainers(container))
}
