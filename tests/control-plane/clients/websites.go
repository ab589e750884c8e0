package main

// The controller of the benchmark as a scenario, with one website.
//
// Question it answers: are all children and the status there, after the website was created and changed, and after a
// child was deleted? Read next: reconciler.go.

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runWebsites runs the controller of the benchmark until it has reconciled a website three times.
func runWebsites(ctx context.Context, w world) error {
	// Scenarios of several namespaces may run at once on a server. Each has a kind of its own.
	websiteVersion.Group = w.namespace + ".example.com"
	c, err := websiteClient(ctx, w)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	started, ended := make(chan struct{}), make(chan error, 1)
	manager, reconciler, err := benchManager(benchOptions{config: w.config, workers: 4}, func() { close(started) })
	if err != nil {
		return err
	}
	go func() { ended <- manager.Start(ctx) }()
	select {
	case <-started:
	case err := <-ended:
		return errors.Join(errors.New("the manager ended before its workers started"), err)
	}
	site := &Website{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: w.namespace}, Spec: WebsiteSpec{Content: "one"}}
	if err := c.Create(ctx, site); err != nil {
		return err
	}
	if err := converged(ctx, c, site); err != nil {
		return err
	}
	before := site.DeepCopy()
	site.Spec.Content = "two"
	if err := c.Patch(ctx, site, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := converged(ctx, c, site); err != nil {
		return err
	}
	if err := c.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}); err != nil {
		return err
	}
	if err := converged(ctx, c, site); err != nil {
		return err
	}
	fmt.Println("errors", reconciler.errors.Load(), "enough reconciles", reconciler.reconciles.Load() >= 3)
	if err := c.Delete(ctx, websiteDefinition()); err != nil {
		return err
	}
	stop()
	return <-ended
}

// websiteClient defines the kind and gives a client that knows it, as soon as the server serves it.
func websiteClient(ctx context.Context, w world) (client.Client, error) {
	scheme, err := websiteScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(w.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, websiteDefinition()); err != nil {
		return nil, err
	}
	return c, until(ctx, "a list of websites", func() (bool, error) {
		err := c.List(ctx, &WebsiteList{})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func websiteDefinition() *unstructured.Unstructured {
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "websites." + websiteVersion.Group},
		"spec": map[string]any{
			"group": websiteVersion.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "websites", "kind": websiteKind},
			"versions": []any{map[string]any{
				"name": websiteVersion.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"spec":   object(map[string]any{"content": map[string]any{"type": "string"}}),
					"status": object(map[string]any{"observedGeneration": map[string]any{"type": "integer", "format": "int64"}}),
				})},
			}},
		},
	}}
}

// converged waits until children and status are as the website wants them, and prints them.
func converged(ctx context.Context, c client.Client, site *Website) error {
	var (
		told       string
		found      Website
		page       corev1.ConfigMap
		service    corev1.Service
		deployment appsv1.Deployment
	)
	err := until(ctx, "the children of "+site.Spec.Content, func() (bool, error) {
		for _, object := range []client.Object{&found, &page, &service, &deployment} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(site), object); err != nil {
				return false, client.IgnoreNotFound(err)
			}
		}
		contents := []string{page.Data["content"], deployment.Spec.Template.Annotations["content"]}
		told = fmt.Sprint(contents, found.Status.ObservedGeneration, service.Spec.Ports[0].Port, service.Spec.Selector,
			*deployment.Spec.Replicas, deployment.Spec.Template.Labels, deployment.Spec.Template.Spec.Containers[0].Image)
		complete := found.Status.ObservedGeneration == found.Generation
		for _, content := range contents {
			complete = complete && content == site.Spec.Content
		}
		return complete, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last: %s", err, told)
	}
	fmt.Println(told)
	for _, child := range []client.Object{&page, &service, &deployment} {
		fmt.Println(metav1.IsControlledBy(child, site), child.GetManagedFields()[0].Manager)
	}
	return nil
}
