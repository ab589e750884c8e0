package main

// The custom kind of the controller benchmark, as a project of controller-runtime declares it.
//
// Question it answers: what is a Website? The copies are those that controller-gen would write.

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

const websiteKind = "Website"

// The group that the benchmark's server defines; a judged script has one of its own.
var websiteVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// Website asks for a page with a content.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec,omitempty"`
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is what the user wants.
type WebsiteSpec struct {
	Content string `json:"content,omitempty"`
}

// WebsiteStatus is what the controller has done.
type WebsiteStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// WebsiteList is the answer to a list of websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

// DeepCopyInto copies the website into another one. Specification and status hold no pointers.
func (w *Website) DeepCopyInto(into *Website) {
	*into = *w
	w.ObjectMeta.DeepCopyInto(&into.ObjectMeta)
}

// DeepCopy gives a copy that shares nothing with the website.
func (w *Website) DeepCopy() *Website {
	if w == nil {
		return nil
	}
	into := new(Website)
	w.DeepCopyInto(into)
	return into
}

// DeepCopyObject makes the website a runtime.Object.
func (w *Website) DeepCopyObject() runtime.Object {
	if copied := w.DeepCopy(); copied != nil {
		return copied
	}
	return nil
}

// DeepCopyInto copies the list into another one.
func (l *WebsiteList) DeepCopyInto(into *WebsiteList) {
	*into = *l
	l.ListMeta.DeepCopyInto(&into.ListMeta)
	if l.Items == nil {
		return
	}
	into.Items = make([]Website, len(l.Items))
	for at := range l.Items {
		l.Items[at].DeepCopyInto(&into.Items[at])
	}
}

// DeepCopy gives a copy that shares nothing with the list.
func (l *WebsiteList) DeepCopy() *WebsiteList {
	if l == nil {
		return nil
	}
	into := new(WebsiteList)
	l.DeepCopyInto(into)
	return into
}

// DeepCopyObject makes the list a runtime.Object.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	if copied := l.DeepCopy(); copied != nil {
		return copied
	}
	return nil
}

// websiteScheme knows the kinds of Kubernetes and websites.
func websiteScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddKnownTypes(websiteVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, websiteVersion)
	return scheme, nil
}
