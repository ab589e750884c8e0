package main

// Many informers of client-go, for the comparison of informer-compare's part "factory".
//
// Question it answers: what do 200 informers of 50 kinds cost here, measured as the other clients are?
// Usage: go-clients factory URL KINDS OBJECTS IDLE-SECONDS. Prints one line of JSON.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type report struct {
	SyncWall    float64 `json:"sync_wall"`
	SyncCPU     float64 `json:"sync_cpu"`
	ResidentKiB uint64  `json:"resident_kib"`
	IdleCPU     float64 `json:"idle_cpu"`
	Received    int64   `json:"received"`
}

func factory(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("usage: go-clients factory URL KINDS OBJECTS IDLE-SECONDS")
	}
	var numbers [3]int
	for at, text := range arguments[1:] {
		number, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		numbers[at] = number
	}
	kinds, objects, idle := numbers[0], numbers[1], time.Duration(numbers[2])*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	wall, cpu := time.Now(), processorTime()
	client, err := dynamic.NewForConfig(&rest.Config{Host: arguments[0], QPS: -1})
	if err != nil {
		return err
	}
	half := func(options *metav1.ListOptions) { options.LabelSelector = "half=yes" }
	parts := []dynamicinformer.DynamicSharedInformerFactory{
		dynamicinformer.NewDynamicSharedInformerFactory(client, 0),
		dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "a", nil),
		dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "b", nil),
		dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, half),
	}
	var received atomic.Int64
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { received.Add(1) }}
	for kind := range kinds {
		resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: fmt.Sprintf("kind%ds", kind)}
		for _, part := range parts {
			if _, err := part.ForResource(resource).Informer().AddEventHandler(handler); err != nil {
				return err
			}
		}
	}
	for _, part := range parts {
		part.Start(ctx.Done())
	}
	for _, part := range parts {
		for resource, synced := range part.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("%v is not synced", resource)
			}
		}
	}
	expected := int64(kinds * (2*objects + objects/2))
	for received.Load() < expected {
		if ctx.Err() != nil {
			return fmt.Errorf("received %d of %d", received.Load(), expected)
		}
		time.Sleep(time.Millisecond)
	}
	made := report{SyncWall: time.Since(wall).Seconds(), SyncCPU: (processorTime() - cpu).Seconds()}
	time.Sleep(time.Second)
	if made.ResidentKiB, err = memory("VmRSS"); err != nil {
		return err
	}
	wall, cpu = time.Now(), processorTime()
	time.Sleep(idle)
	made.IdleCPU = float64((processorTime() - cpu).Milliseconds()) / time.Since(wall).Seconds()
	made.Received = received.Load()
	return json.NewEncoder(os.Stdout).Encode(made)
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// memory is a line of /proc/self/status in KiB: VmRSS is what is resident, VmHWM the most that ever was.
func memory(name string) (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			return strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc", name)
}
