package main

// An informer of pods, for the table of informer-compare.
//
// Question it answers: what do client-go's first list, changes, lone changes and a second list cost, in JSON and in protobuf?
// Usage: go-clients table-bench --server URL --events N --lone N --changed N --settle-ms N [--protobuf]
//  1. A stretch ends when the handler has seen its last change; the second list when the informer has its version.
//  2. After the first and the second list the cache must have every pod of the first.

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// loneRate is how many lone changes there are in a second.
const loneRate = 50

// tableReport is what the comparison reads.
type tableReport struct {
	Sync      stretch `json:"sync"`
	SyncedKiB uint64  `json:"synced_kib"`
	Events    stretch `json:"events"`
	Lone      stretch `json:"lone"`
	SteadyKiB uint64  `json:"steady_kib"`
	Relist    stretch `json:"relist"`
	PeakKiB   uint64  `json:"peak_kib"`
}

// stretch is what a part has cost, in seconds.
type stretch struct {
	CPU  float64 `json:"cpu"`
	User float64 `json:"user"`
	Wall float64 `json:"wall"`
}

// clock measures a stretch from its making.
type clock struct {
	begun     time.Time
	cpu, user time.Duration
}

func startClock() clock {
	return clock{time.Now(), processorTime(), userTime()}
}

func (c clock) cost() stretch {
	return stretch{(processorTime() - c.cpu).Seconds(), (userTime() - c.user).Seconds(), time.Since(c.begun).Seconds()}
}

func userTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano())
}

// tableClient is an informer whose handler tells each change.
type tableClient struct {
	url     string
	pods    cache.SharedIndexInformer
	changes chan string
	rest    time.Duration
}

func tableBench(arguments []string) error {
	flags := flag.NewFlagSet("table-bench", flag.ContinueOnError)
	url := flags.String("server", "", "`URL` of the replay server")
	events := flags.Uint64("events", 0, "`N`umber of changes")
	lone := flags.Uint64("lone", 0, "changes that come alone")
	changed := flags.Uint64("changed", 0, "pods that the second list finds changed")
	settle := flags.Uint64("settle-ms", 1000, "rest before memory is read")
	protobuf := flags.Bool("protobuf", false, "asks for protobuf")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	version, err := ask("GET", *url+"/replay/version")
	if err != nil {
		return err
	}
	begin, err := strconv.ParseUint(strings.TrimSpace(version), 10, 64)
	if err != nil {
		return err
	}
	last := begin + *events
	ends := map[string]bool{strconv.FormatUint(last, 10): true, strconv.FormatUint(last+*lone, 10): true}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := tableClient{url: *url, changes: make(chan string, 2), rest: time.Duration(*settle) * time.Millisecond}
	var report tableReport
	at := startClock()
	if err := client.start(ctx, *protobuf, ends); err != nil {
		return err
	}
	report.Sync = at.cost()
	if err := client.stretches(&report, *events, *lone, *changed, last); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// start returns when the first list is in the cache.
func (c *tableClient) start(ctx context.Context, protobuf bool, ends map[string]bool) error {
	config := &rest.Config{Host: c.url, QPS: -1, UserAgent: "go-clients/1.0"}
	if protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := kubeinformers.NewSharedInformerFactory(clients, 0)
	c.pods = factory.Core().V1().Pods().Informer()
	changed := func(_, now any) {
		if pod, is := now.(*corev1.Pod); is && ends[pod.ResourceVersion] {
			c.changes <- pod.ResourceVersion
		}
	}
	if _, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: changed}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), c.pods.HasSynced) {
		return errors.New("it did not sync")
	}
	return nil
}

func (c *tableClient) stretches(report *tableReport, events, lone, changed, last uint64) (err error) {
	count := len(c.pods.GetStore().ListKeys())
	time.Sleep(c.rest)
	if report.SyncedKiB, err = memory("VmRSS"); err != nil {
		return err
	}
	at := startClock()
	if _, err = ask("POST", fmt.Sprintf("%s/replay/events?count=%d", c.url, events)); err != nil {
		return err
	}
	<-c.changes
	report.Events = at.cost()
	at = startClock()
	if _, err = ask("POST", fmt.Sprintf("%s/replay/events?count=%d&rate=%d", c.url, lone, loneRate)); err != nil {
		return err
	}
	<-c.changes
	report.Lone = at.cost()
	time.Sleep(c.rest)
	if report.SteadyKiB, err = memory("VmRSS"); err != nil {
		return err
	}
	// What is resident now is the peak.
	if err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return err
	}
	at = startClock()
	if _, err = ask("POST", fmt.Sprintf("%s/replay/expire?changed=%d", c.url, changed)); err != nil {
		return err
	}
	listed := strconv.FormatUint(last+lone+changed+1, 10)
	for c.pods.LastSyncResourceVersion() != listed {
		time.Sleep(time.Millisecond)
	}
	report.Relist = at.cost()
	if now := len(c.pods.GetStore().ListKeys()); now != count || count == 0 {
		return fmt.Errorf("%d pods instead of %d", now, count)
	}
	report.PeakKiB, err = memory("VmHWM")
	return err
}
