package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1 "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// events records events by both recorders of client-go, and reads the results in the core group.
func events(ctx context.Context, w world) error {
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return err
	}
	subject, err := clients.CoreV1().ConfigMaps(w.namespace).Create(ctx, configMap("subject"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	old := record.NewBroadcaster(record.WithContext(ctx))
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events(w.namespace)})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "judge"})
	recorder.Event(subject, corev1.EventTypeNormal, "Recorded", "in the old way")
	recorder.Event(subject, corev1.EventTypeNormal, "Recorded", "in the old way")
	recent := eventsv1.NewEventBroadcasterAdapterWithContext(ctx, clients)
	recent.StartRecordingToSink(ctx.Done())
	defer recent.Shutdown()
	recent.NewRecorder("judge").Eventf(subject, nil, corev1.EventTypeWarning, "Recorded", "Testing", "in the new way")
	var found *corev1.EventList
	err = until(ctx, "events", func() (bool, error) {
		found, err = clients.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=subject"})
		if err != nil {
			return false, err
		}
		counts := int32(0)
		for _, event := range found.Items {
			counts += max(event.Count, 1)
		}
		return counts >= 3, nil
	})
	if err != nil {
		return err
	}
	lines := map[string]string{}
	for _, event := range found.Items {
		lines[event.Message] = fmt.Sprint(event.Type, event.Reason, event.Count, event.Source.Component, event.ReportingController, event.InvolvedObject.Kind)
	}
	for _, message := range []string{"in the old way", "in the new way"} {
		fmt.Println(message, lines[message])
	}
	return nil
}

// election lets one candidate lead, then another.
//
// A renewal that is on its way when a candidate resigns may be written between the read and the write of its release. The
// release is then refused as a conflict, client-go does not try again, and the lease stays taken. On a busy machine that
// happens often, so a candidate leads and resigns until its release is accepted; it keeps its number of transitions.
func election(ctx context.Context, w world) error {
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return err
	}
	for _, candidate := range []string{"first", "second"} {
		var told []string
		err := until(ctx, "a free lease", func() (bool, error) {
			told = term(ctx, clients, w.namespace, candidate)
			lease, err := clients.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "", nil
		})
		if err != nil {
			return err
		}
		for _, line := range told {
			fmt.Println(line)
		}
	}
	return nil
}

// term lets a candidate lead once, and gives the content of the lease meanwhile.
func term(ctx context.Context, clients kubernetes.Interface, namespace, candidate string) []string {
	var told []string
	term, resign := context.WithCancel(ctx)
	defer resign()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
		Client:     clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: candidate},
	}
	leaderelection.RunOrDie(term, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: "judge",
		LeaseDuration: 120 * time.Second, RenewDeadline: 90 * time.Second, RetryPeriod: 100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				lease, err := clients.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
				if err == nil {
					told = append(told, fmt.Sprint("leads: ", *lease.Spec.HolderIdentity, " transitions: ", *lease.Spec.LeaseTransitions))
				}
				resign()
			},
			OnStoppedLeading: func() { told = append(told, fmt.Sprint("resigns: ", candidate)) },
		},
	})
	return told
}
