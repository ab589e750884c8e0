package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// typedClient uses each function of controller-runtime's client on an object once.
func typedClient(ctx context.Context, w world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	made := deployment("d", w.namespace)
	if err := c.Create(ctx, made); err != nil {
		return err
	}
	fmt.Println("created", made.Generation, *made.Spec.Replicas, made.Spec.Strategy.Type)
	stale := made.DeepCopy()
	replicas := int32(3)
	made.Spec.Replicas = &replicas
	if err := c.Update(ctx, made); err != nil {
		return err
	}
	fmt.Println("updated", made.Generation, *made.Spec.Replicas)
	fmt.Println("stale:", apierrors.IsConflict(c.Update(ctx, stale)), "again:", apierrors.IsAlreadyExists(c.Create(ctx, deployment("d", w.namespace))))
	made.Status = appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2, ObservedGeneration: made.Generation}
	if err := c.Status().Update(ctx, made); err != nil {
		return err
	}
	fmt.Println("status", made.Generation, made.Status.ReadyReplicas)
	for name, patch := range map[string]func(client.Object) client.Patch{
		"merge":     client.MergeFrom,
		"strategic": func(before client.Object) client.Patch { return client.StrategicMergeFrom(before) },
	} {
		before := made.DeepCopy()
		controllerutil.AddFinalizer(made, "judge.example.com/"+name)
		if err := c.Patch(ctx, made, patch(before)); err != nil {
			return err
		}
	}
	fmt.Println("patched", len(made.Finalizers), made.Generation)
	before := made.DeepCopy()
	made.Status.ReadyReplicas = 3
	if err := c.Status().Patch(ctx, made, client.MergeFrom(before)); err != nil {
		return err
	}
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.InNamespace(w.namespace), client.Limit(1)); err != nil {
		return err
	}
	fmt.Println("listed", len(list.Items), list.Items[0].Status.ReadyReplicas)
	if err := c.Delete(ctx, made, client.Preconditions{UID: &made.UID}); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
		return err
	}
	fmt.Println("terminating", made.DeletionTimestamp != nil)
	made.Finalizers = nil
	if err := c.Update(ctx, made); err != nil {
		return err
	}
	fmt.Println("gone", apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(made), made)))
	return nil
}

// apply uses server-side apply as both libraries offer it.
func apply(ctx context.Context, w world) error {
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return err
	}
	wanted := coreapply.ConfigMap("a", w.namespace).WithData(map[string]string{"x": "1", "y": "1"})
	maps := clients.CoreV1().ConfigMaps(w.namespace)
	made, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	fmt.Println("applied", made.Data, len(made.ManagedFields))
	other := coreapply.ConfigMap("a", w.namespace).WithData(map[string]string{"x": "2"})
	_, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"})
	fmt.Println("conflict", apierrors.IsConflict(err), err)
	made, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	fmt.Println("forced", made.Data, len(made.ManagedFields))
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	spec := appsapply.DeploymentSpec().WithReplicas(2).
		WithSelector(labelSelector("d")).
		WithTemplate(podTemplate("d"))
	if err := c.Apply(ctx, appsapply.Deployment("d", w.namespace).WithSpec(spec), client.FieldOwner("three")); err != nil {
		return err
	}
	extracted := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "d"}, extracted); err != nil {
		return err
	}
	own, err := appsapply.ExtractDeployment(extracted, "three")
	if err != nil {
		return err
	}
	fmt.Println("extracted", *own.Spec.Replicas, len(own.Spec.Template.Spec.Containers))
	return nil
}

// unstructuredClient uses kinds for which there is no Go type.
func unstructuredClient(ctx context.Context, w world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	object.SetNamespace(w.namespace)
	object.SetGenerateName("made-")
	object.Object["data"] = map[string]any{"k": "v"}
	if err := c.Create(ctx, object); err != nil {
		return err
	}
	fmt.Println(len(object.GetName()) > len("made-"), object.Object["data"])
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := c.List(ctx, metadata, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	fmt.Println(len(metadata.Items), metadata.Items[0].Kind)
	return c.DeleteAllOf(ctx, object, client.InNamespace(w.namespace))
}

// definitions creates a kind and uses it as soon as discovery lists it.
func definitions(ctx context.Context, w world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	group := w.namespace + ".example.com"
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{"type": "object", "properties": map[string]any{
						"size": map[string]any{"type": "integer", "default": int64(3), "minimum": int64(1)},
					}},
				}}},
			}},
		},
	}}
	if err := c.Create(ctx, definition); err != nil {
		return err
	}
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"gone": "x"}}}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
	widget.SetName("w")
	widget.SetNamespace(w.namespace)
	err = until(ctx, "a widget", func() (bool, error) {
		err := c.Create(ctx, widget.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
	if err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
		return err
	}
	fmt.Println("defaulted and pruned", widget.Object["spec"])
	_ = unstructured.SetNestedField(widget.Object, int64(0), "spec", "size")
	err = c.Update(ctx, widget)
	fmt.Println("refused", apierrors.IsInvalid(err))
	return c.Delete(ctx, definition)
}

// copier creates a secret for every config map that has the label for it.
type copier struct{ client.Client }

func (c copier) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var source corev1.ConfigMap
	if err := c.Get(ctx, request.NamespacedName, &source); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels["copy"] != "yes" {
		return reconcile.Result{}, nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, copied, func() error {
		copied.StringData = source.Data
		return controllerutil.SetControllerReference(&source, copied, scheme.Scheme)
	})
	return reconcile.Result{}, err
}

// runManager runs a manager with a leader and a reconciler until the result of its work is there.
func runManager(ctx context.Context, w world) error {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "manager",
		LeaderElectionNamespace: w.namespace, LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
	})
	if err != nil {
		return err
	}
	worker := copier{manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(worker)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	source := configMap("source")
	source.Namespace, source.Labels = w.namespace, map[string]string{"copy": "yes"}
	if err := c.Create(ctx, source); err != nil {
		return err
	}
	var copied corev1.Secret
	seen := func(want string) error {
		return until(ctx, "a secret saying "+want, func() (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(source), &copied)
			return err == nil && string(copied.Data["k"]) == want, client.IgnoreNotFound(err)
		})
	}
	if err := seen("v"); err != nil {
		return err
	}
	fmt.Println("copied", copied.OwnerReferences[0].Kind, *copied.OwnerReferences[0].Controller)
	source.Data["k"] = "w"
	if err := c.Update(ctx, source); err != nil {
		return err
	}
	if err := seen("w"); err != nil {
		return err
	}
	first := copied.UID
	if err := c.Delete(ctx, &copied); err != nil {
		return err
	}
	if err := until(ctx, "a new secret", func() (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(source), &copied)
		return err == nil && copied.UID != first, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	fmt.Println("made again")
	stop()
	return <-ended
}
