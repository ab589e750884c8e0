package main

import (
	"context"
	"fmt"
	"net/http"
	"sort"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// log keeps what handlers received, in order for each object.
type log struct {
	lock  sync.Mutex
	lines []string
}

func (l *log) add(what string, object any) {
	if gone, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
		object = gone.Obj
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%T %s %s", object, accessor.GetName(), what))
}

func (l *log) count() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.lines)
}

// print shows the lines by object; the lines of one object stay in order.
func (l *log) print() {
	l.lock.Lock()
	defer l.lock.Unlock()
	key := func(line string) (object string) {
		var kind, name string
		_, _ = fmt.Sscan(line, &kind, &name)
		return kind + " " + name
	}
	sort.SliceStable(l.lines, func(i, j int) bool { return key(l.lines[i]) < key(l.lines[j]) })
	for _, line := range l.lines {
		fmt.Println(line)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func pod(name string) *corev1.Pod {
	containers := []corev1.Container{{Name: "c", Image: "i"}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: containers}}
}

func deployment(name, namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(name).Spec},
		},
	}
}

// informers runs three shared informers over objects that are created, changed and deleted.
func informers(ctx context.Context, w world) error {
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return err
	}
	maps := clients.CoreV1().ConfigMaps(w.namespace)
	pods := clients.CoreV1().Pods(w.namespace)
	deployments := clients.AppsV1().Deployments(w.namespace)
	for _, name := range []string{"before-a", "before-b"} {
		if _, err := maps.Create(ctx, configMap(name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	told := &log{}
	factory := kubeinformers.NewSharedInformerFactoryWithOptions(clients, 0, kubeinformers.WithNamespace(w.namespace))
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().ConfigMaps().Informer(),
		factory.Core().V1().Pods().Informer(),
		factory.Apps().V1().Deployments().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { told.add("added", object) },
			UpdateFunc: func(_, object any) { told.add("updated", object) },
			DeleteFunc: func(object any) { told.add("deleted", object) },
		})
		if err != nil {
			return err
		}
	}
	factory.StartWithContext(ctx)
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v never synced", kind)
		}
	}
	if _, err := pods.Create(ctx, pod("p"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := deployments.Create(ctx, deployment("d", w.namespace), metav1.CreateOptions{}); err != nil {
		return err
	}
	patch := []byte(`{"data":{"k":"w"}}`)
	if _, err := maps.Patch(ctx, "before-a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "before-b", metav1.DeleteOptions{}); err != nil {
		return err
	}
	patch = []byte(`{"status":{"phase":"Running"}}`)
	if _, err := pods.Patch(ctx, "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	if err := pods.Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		return err
	}
	// Added: two maps, the pod, the deployment. Updated: a map, the pod twice (status, deletion). Deleted: a map, the pod.
	if err := until(ctx, "nine notifications", func() (bool, error) { return told.count() >= 9, nil }); err != nil {
		told.print()
		return err
	}
	told.print()
	kept, err := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(w.namespace).Get("before-a")
	if err != nil {
		return err
	}
	fmt.Println("the cache says", kept.Data["k"])
	return nil
}

// http2 prints by which protocol answers come.
func http2(ctx context.Context, w world) error {
	seen := &protocols{seen: map[string]bool{}}
	w.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return err
	}
	if _, err := clients.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{}); err != nil {
		return err
	}
	fmt.Println(seen.seen)
	return nil
}
