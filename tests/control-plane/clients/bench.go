package main

// A controller of controller-runtime, for the comparison of informer-compare's part "controller".
//
// Question it answers: what does a practised user's controller of websites with three children each cost here?
// Usage: go-clients controller-bench --server URL --workers N [--kubeconfig FILE] [--full-children] [--managed-fields]
//  1. It prints {"ready":true} when its caches are synced and its workers start.
//  2. For each line "report" of its input it prints one line of JSON, counted from the start of the process.
//  3. It ends with its input.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// benchOptions is what the command line says.
type benchOptions struct {
	config        *rest.Config
	workers       int
	fullChildren  bool
	managedFields bool
}

// benchReport is the answer to a line "report".
type benchReport struct {
	Reconciles   int64   `json:"reconciles"`
	Errors       int64   `json:"errors"`
	CPUMillis    float64 `json:"cpu_ms"`
	ResidentKiB  uint64  `json:"resident_kib"`
	AnonymousKiB uint64  `json:"anonymous_kib"`
	PeakKiB      uint64  `json:"peak_kib"`
}

// controllerBench runs the controller until its input ends.
func controllerBench(arguments []string) error {
	options, err := parseBench(arguments)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	started := make(chan struct{})
	manager, reconciler, err := benchManager(options, sync.OnceFunc(func() { close(started) }))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	lines, out := make(chan string), json.NewEncoder(os.Stdout)
	go readLines(os.Stdin, lines)
	for {
		select {
		case <-started:
			started = nil
			err = out.Encode(map[string]bool{"ready": true})
		case line, more := <-lines:
			if !more {
				stop()
				return <-ended
			}
			err = answer(line, reconciler, out)
		case err := <-ended:
			return errors.Join(errors.New("the manager ended before the input"), err)
		}
		if err != nil {
			return err
		}
	}
}

func parseBench(arguments []string) (benchOptions, error) {
	var options benchOptions
	flags := flag.NewFlagSet("controller-bench", flag.ContinueOnError)
	url := flags.String("server", "", "`URL` of the API server; goes before the one of a kubeconfig")
	kubeconfig := flags.String("kubeconfig", "", "`FILE` with credentials, for a server that wants some")
	flags.IntVar(&options.workers, "workers", 1, "`N`umber of reconciles at a time")
	flags.BoolVar(&options.fullChildren, "full-children", false, "keep whole children in the cache, not only their metadata")
	flags.BoolVar(&options.managedFields, "managed-fields", false, "keep metadata.managedFields in the cache")
	if err := flags.Parse(arguments); err != nil {
		return options, err
	}
	if flags.NArg() > 0 || *url == "" && *kubeconfig == "" || options.workers < 1 {
		return options, errors.New("usage: go-clients controller-bench --server URL --workers N [--kubeconfig FILE] [--full-children] [--managed-fields]")
	}
	config, err := clientcmd.BuildConfigFromFlags(*url, *kubeconfig)
	if err != nil {
		return options, err
	}
	config.QPS, config.UserAgent = -1, "go-clients/1.0"
	options.config = config
	return options, nil
}

// benchManager makes a manager with the controller; started is called when the controller's workers start.
func benchManager(options benchOptions, started func()) (manager.Manager, *websites, error) {
	// client-go uses this transport for plain HTTP. Its default keeps two connections, so that most requests of many
	// workers would open a new one; a cluster is reached by HTTP/2, where one connection carries them all.
	if transport, plain := http.DefaultTransport.(*http.Transport); plain {
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, options.workers
	}
	scheme, err := websiteScheme()
	if err != nil {
		return nil, nil, err
	}
	kept := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if options.managedFields {
		kept.DefaultTransform = nil
	}
	manager, err := ctrl.NewManager(options.config, ctrl.Options{
		Scheme: scheme, Cache: kept, LeaderElection: false,
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, nil, err
	}
	reconciler := &websites{Client: manager.GetClient()}
	var children []builder.OwnsOption
	if !options.fullChildren {
		children = append(children, builder.OnlyMetadata)
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Website{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, children...).
		Owns(&corev1.Service{}, children...).
		Owns(&appsv1.Deployment{}, children...).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.workers}).
		WithLogConstructor(logWorkers(started)).
		Complete(reconciler)
	return manager, reconciler, err
}

// logWorkers makes a log that is off, but tells when the controller's workers start. That is after all lists are in the
// cache and delivered to the queue, and there is no other sign of it.
func logWorkers(started func()) func(*reconcile.Request) logr.Logger {
	controllers := funcr.New(func(_, line string) {
		if strings.Contains(line, "Starting workers") {
			started()
		}
	}, funcr.Options{})
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return controllers
		}
		return logr.Discard()
	}
}

// readLines sends each line, and closes the channel at the end.
func readLines(input io.Reader, lines chan<- string) {
	defer close(lines)
	for scanner := bufio.NewScanner(input); scanner.Scan(); {
		lines <- scanner.Text()
	}
}

func answer(line string, reconciler *websites, out *json.Encoder) error {
	if line != "report" {
		return fmt.Errorf("no request %q; there is only \"report\"", line)
	}
	resident, err := memory("VmRSS")
	if err != nil {
		return err
	}
	anonymous, err := memory("RssAnon")
	if err != nil {
		return err
	}
	peak, err := memory("VmHWM")
	if err != nil {
		return err
	}
	return out.Encode(benchReport{
		Reconciles: reconciler.reconciles.Load(), Errors: reconciler.errors.Load(),
		CPUMillis:   float64(processorTime().Microseconds()) / 1000,
		ResidentKiB: resident, AnonymousKiB: anonymous, PeakKiB: peak,
	})
}
