package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// meeting is a server and the text that is configured as its authority.
type meeting struct {
	URL       string
	Authority string
}

// trust reads meetings from standard input and prints for each why client-go does not connect; empty if it does.
//
// Question it answers: which certificates does kubectl accept?
func trust([]string) error {
	var meetings []meeting
	if err := json.NewDecoder(os.Stdin).Decode(&meetings); err != nil {
		return err
	}
	answers := make([]string, len(meetings))
	for at, meeting := range meetings {
		if err := connects(meeting); err != nil {
			answers[at] = strings.TrimSpace(err.Error())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func connects(meeting meeting) error {
	client, err := rest.HTTPClientFor(&rest.Config{
		Host:            meeting.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(meeting.Authority)},
		Timeout:         30 * time.Second,
	})
	if err != nil {
		return err
	}
	answer, err := client.Get(meeting.URL + "/version")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
