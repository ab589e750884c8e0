package main

// The reconciler of the controller benchmark.
//
// Question it answers: what does one call of Reconcile do? It reads the website from the cache, applies its three
// children by server-side apply, and writes the observed generation if that has changed.
//  1. Each call is counted, and each call that fails, but for those that the end of the program interrupts.

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// websiteManager is the field manager of all that the reconciler writes.
const websiteManager = client.FieldOwner("bench")

// shownErrors is how many errors are written to standard error; the others are only counted.
const shownErrors = 10

// websites reconciles websites.
type websites struct {
	client.Client
	reconciles, errors atomic.Int64
}

func (w *websites) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	w.reconciles.Add(1)
	err := w.reconcile(ctx, request)
	if err != nil && ctx.Err() == nil && w.errors.Add(1) <= shownErrors {
		fmt.Fprintln(os.Stderr, request, err)
	}
	return reconcile.Result{}, err
}

func (w *websites) reconcile(ctx context.Context, request reconcile.Request) error {
	var site Website
	if err := w.Get(ctx, request.NamespacedName, &site); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, child := range children(&site) {
		if err := w.Apply(ctx, child, websiteManager, client.ForceOwnership); err != nil {
			return err
		}
	}
	if site.Status.ObservedGeneration == site.Generation {
		return nil
	}
	before := site.DeepCopy()
	site.Status.ObservedGeneration = site.Generation
	return w.Status().Patch(ctx, &site, client.MergeFrom(before), websiteManager)
}

// children are the objects that a website owns. They have its name and are in its namespace.
func children(site *Website) []runtime.ApplyConfiguration {
	owner := metaapply.OwnerReference().
		WithAPIVersion(websiteVersion.String()).WithKind(websiteKind).
		WithName(site.Name).WithUID(site.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	labels := map[string]string{"app": site.Name}
	template := coreapply.PodTemplateSpec().
		WithLabels(labels).
		WithAnnotations(map[string]string{"content": site.Spec.Content}).
		WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("web").WithImage("nginx")))
	return []runtime.ApplyConfiguration{
		coreapply.ConfigMap(site.Name, site.Namespace).
			WithOwnerReferences(owner).
			WithData(map[string]string{"content": site.Spec.Content}),
		coreapply.Service(site.Name, site.Namespace).
			WithOwnerReferences(owner).
			WithSpec(coreapply.ServiceSpec().WithClusterIP("None").WithSelector(labels).WithPorts(coreapply.ServicePort().WithPort(80))),
		appsapply.Deployment(site.Name, site.Namespace).
			WithOwnerReferences(owner).
			WithSpec(appsapply.DeploymentSpec().
				WithReplicas(1).
				WithSelector(labelSelector(site.Name)).
				WithTemplate(template)),
	}
}
