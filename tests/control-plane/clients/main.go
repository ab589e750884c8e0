// Command go-clients runs one scenario of Go's own clients against an API server and prints what it observed.
//
// Question it answers: do client-go and controller-runtime work against this server, unchanged? What is printed is the
// same for every correct server, so that a caller can compare two of them line by line.
//  1. A scenario ends by itself: with 0, or with 1 and the reason on standard error.
//  2. It stays in its namespace, which must exist.
//
// Usage: go-clients KUBECONFIG NAMESPACE SCENARIO [json|protobuf], or go-clients COMMAND ... with one of: proxies
// (proxies.go), trust (trust.go), factory (factory.go), controller-bench (bench.go), memory-bench (memory.go), table-bench (table.go)
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// limit is how long a scenario may take before it fails: more than a loaded machine needs.
const limit = 4 * time.Minute

// world is what a scenario runs in.
type world struct {
	config    *rest.Config
	namespace string
}

var scenarios = map[string]func(context.Context, world) error{
	"informers":    informers,
	"events":       events,
	"election":     election,
	"client":       typedClient,
	"apply":        apply,
	"definitions":  definitions,
	"manager":      runManager,
	"http2":        http2,
	"unstructured": unstructuredClient,
	"websites":     runWebsites,
}

// commands need no kubeconfig and no namespace.
var commands = map[string]func([]string) error{
	"proxies":          proxies,
	"trust":            trust,
	"factory":          factory,
	"controller-bench": controllerBench,
	"memory-bench":     memoryBench,
	"table-bench":      tableBench,
}

func main() {
	if len(os.Args) > 1 {
		if command, known := commands[os.Args[1]]; known {
			if err := command(os.Args[2:]); err != nil {
				fail(err)
			}
			return
		}
	}
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: go-clients KUBECONFIG NAMESPACE SCENARIO [json|protobuf]"))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fail(err)
	}
	config.QPS, config.Burst, config.UserAgent = -1, 0, "go-clients/1.0"
	if len(os.Args) > 4 && os.Args[4] == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	scenario, known := scenarios[os.Args[3]]
	if !known {
		fail(fmt.Errorf("no scenario %q", os.Args[3]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := scenario(ctx, world{config: config, namespace: os.Args[2]}); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// until asks until the answer is yes. When the scenario's time is over, it fails and names what it waited for.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		yes, err := done()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: never", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// protocols notes by which version of HTTP answers come.
type protocols struct {
	next http.RoundTripper
	lock sync.Mutex
	seen map[string]bool
}

func (p *protocols) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := p.next.RoundTrip(request)
	if err == nil {
		p.lock.Lock()
		p.seen[answer.Proto] = true
		p.lock.Unlock()
	}
	return answer, err
}
