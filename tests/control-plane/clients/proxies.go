package main

import (
	"encoding/json"
	"net/url"
	"os"

	"golang.org/x/net/http/httpproxy"
)

// question is an environment and an endpoint.
type question struct {
	httpproxy.Config
	URL string
}

// proxies reads questions from standard input and prints the proxy that Go uses for each, without user and password;
// empty is none.
//
// Question it answers: what do HTTPS_PROXY, HTTP_PROXY and NO_PROXY mean for kubectl and client-go?
func proxies([]string) error {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		return err
	}
	answers := make([]string, len(questions))
	for at, question := range questions {
		endpoint, err := url.Parse(question.URL)
		if err != nil {
			return err
		}
		proxy, err := question.ProxyFunc()(endpoint)
		if err != nil {
			return err
		}
		if proxy != nil {
			answers[at] = proxy.Scheme + "://" + proxy.Host
		}
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}
