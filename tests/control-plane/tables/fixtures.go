package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var moment = time.Date(2026, 6, 9, 12, 30, 5, 250_000_000, time.UTC)

// fill sets every field of a value that has a field number; depth bounds the schemas, which contain themselves.
func fill(value reflect.Value, depth int) {
	switch place := value.Addr().Interface().(type) {
	case *metav1.Time:
		*place = metav1.NewTime(moment)
		return
	case *metav1.MicroTime:
		*place = metav1.NewMicroTime(moment)
		return
	case *metav1.Duration:
		*place = metav1.Duration{Duration: 3_725_500_000_000}
		return
	case *resource.Quantity:
		*place = resource.MustParse("1500m")
		return
	case *intstr.IntOrString:
		*place = intstr.FromString("25%")
		return
	case *runtime.RawExtension:
		place.Raw = []byte(`{"a":1}`)
		return
	case *metav1.FieldsV1:
		place.Raw = []byte(`{"f:data":{}}`)
		return
	case *apiextensions.JSON:
		place.Raw = []byte(`[1,"x"]`)
		return
	}
	fillPlain(value, depth)
}

func fillPlain(value reflect.Value, depth int) {
	switch value.Kind() {
	case reflect.String:
		value.SetString("text")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(-7)
	case reflect.Float64:
		value.SetFloat(2.5)
	case reflect.Pointer:
		if depth > 0 {
			value.Set(reflect.New(value.Type().Elem()))
			fill(value.Elem(), depth-1)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte("bytes"))
		} else if depth > 0 {
			value.Set(reflect.MakeSlice(value.Type(), 2, 2))
			fill(value.Index(0), depth-1)
		}
	case reflect.Map:
		if depth > 0 {
			key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
			fill(key, depth-1)
			fill(element, depth-1)
			value.Set(reflect.MakeMap(value.Type()))
			value.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() && field.Tag.Get("protobuf") != "" {
				fill(value.Field(i), depth-1)
			}
		}
	}
}

// fixtures prints two lines for each kind, its zero value and one with every field set: version, kind, the body as
// protobuf in base64, the same as JSON.
func fixtures(known *runtime.Scheme, kinds []string) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	codec := protobuf.NewSerializer(known, known)
	for _, line := range kinds {
		words := strings.Fields(line)
		version := strings.Replace(words[0], "*", "v1", 1)
		gvk := schema.FromAPIVersionAndKind(version, words[1])
		for _, full := range []bool{false, true} {
			object, err := known.New(gvk)
			if err != nil {
				continue
			}
			if full {
				fill(reflect.ValueOf(object).Elem(), 12)
			}
			object.GetObjectKind().SetGroupVersionKind(gvk)
			var body strings.Builder
			if err := codec.Encode(object, &body); err != nil {
				panic(err)
			}
			back, _, err := codec.Decode([]byte(body.String()), nil, nil)
			if err != nil {
				panic(err)
			}
			back.GetObjectKind().SetGroupVersionKind(gvk)
			text, err := json.Marshal(back)
			if err != nil {
				fmt.Fprintln(os.Stderr, gvk, err)
				continue
			}
			fmt.Fprintf(out, "%s %s %s %s\n", version, words[1], base64.StdEncoding.EncodeToString([]byte(body.String())), text)
		}
	}
}
