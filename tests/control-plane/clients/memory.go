package main

// An informer of pods, for the comparison of informer-compare's part "memory".
//
// Question it answers: what does client-go's informer hold after its first list, and after many changes, and what does a
// change cost? Usage: go-clients memory-bench --server URL --changes N --rate N
//  1. The server sends its changes when this program says so: all at once, or at the rate, if that is not zero.
//  2. It prints one line of JSON when its handler has seen the last change.

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// memoryRest is how long it rests before its memory is read.
const memoryRest = time.Second

// memoryReport is what the comparison reads.
type memoryReport struct {
	ListedKiB  uint64 `json:"listed_kib"`
	PeakKiB    uint64 `json:"peak_kib"`
	ChangedKiB uint64 `json:"changed_kib"`
	Changes    cost   `json:"changes"`
}

type cost struct {
	CPU  float64 `json:"cpu"`
	Wall float64 `json:"wall"`
}

func memoryBench(arguments []string) error {
	flags := flag.NewFlagSet("memory-bench", flag.ContinueOnError)
	url := flags.String("server", "", "`URL` of the replay server")
	changes := flags.Uint64("changes", 0, "`N`umber of changes")
	rate := flags.Uint64("rate", 0, "changes in a second; 0: as fast as they are read")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: *url, QPS: -1, UserAgent: "go-clients/1.0"})
	if err != nil {
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
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	caughtUp := make(chan struct{})
	if err := followPods(ctx, clients, strconv.FormatUint(begin+*changes, 10), caughtUp); err != nil {
		return err
	}
	report, err := measureChanges(*url, *rate, caughtUp)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// followPods returns when the first list is in the cache; it closes the channel at the change to this version.
func followPods(ctx context.Context, clients kubernetes.Interface, last string, caughtUp chan struct{}) error {
	factory := kubeinformers.NewSharedInformerFactory(clients, 0)
	pods := factory.Core().V1().Pods().Informer()
	end := sync.OnceFunc(func() { close(caughtUp) })
	changed := func(_, now any) {
		if pod, is := now.(*corev1.Pod); is && pod.ResourceVersion == last {
			end()
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: changed}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return errors.New("it did not sync")
	}
	return nil
}

func measureChanges(url string, rate uint64, caughtUp <-chan struct{}) (report memoryReport, err error) {
	time.Sleep(memoryRest)
	if report.ListedKiB, err = memory("VmRSS"); err != nil {
		return report, err
	}
	// What is resident now is the peak.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return report, err
	}
	begun, cpu := time.Now(), processorTime()
	if err := release(url, rate); err != nil {
		return report, err
	}
	<-caughtUp
	report.Changes = cost{CPU: (processorTime() - cpu).Seconds(), Wall: time.Since(begun).Seconds()}
	time.Sleep(memoryRest)
	if report.PeakKiB, err = memory("VmHWM"); err != nil {
		return report, err
	}
	report.ChangedKiB, err = memory("VmRSS")
	return report, err
}

func release(url string, rate uint64) error {
	if rate == 0 {
		_, err := ask("POST", url+"/replay/events")
		return err
	}
	_, err := ask("POST", fmt.Sprintf("%s/replay/events?rate=%d", url, rate))
	return err
}

func ask(method, url string) (string, error) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	return string(text), err
}
