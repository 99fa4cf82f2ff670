// Put into a copy of apimachinery's field manager, this writes down what its own tests ask of it and what it answers.
package internal

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	recordLock sync.Mutex
	recordFile *os.File
)

// Update is upstream's, written down.
func (f *FieldManager) Update(live, object runtime.Object, manager string) (runtime.Object, error) {
	record := recordOf(f, live, object, manager)
	result, err := f.upstreamUpdate(live, object, manager)
	if err == nil {
		record.write(result, err)
	}
	return result, err
}

// Apply is upstream's, written down.
func (f *FieldManager) Apply(live, object runtime.Object, manager string, force bool) (runtime.Object, error) {
	record := recordOf(f, live, object, manager)
	if record != nil {
		record.Step["Apply"], record.Step["Force"] = true, force
	}
	result, err := f.upstreamApply(live, object, manager, force)
	record.write(result, err)
	return result, err
}

type recorded struct {
	Step map[string]any
	Done map[string]any
	// times are those that the live object had.
	times map[int64]bool
}

// recordOf is nil for managers that are not put together as usual.
func recordOf(f *FieldManager, live, object runtime.Object, manager string) *recorded {
	if _, ok := f.fieldManager.(*versionCheckManager); !ok {
		return nil
	}
	record := &recorded{Step: map[string]any{}, Done: map[string]any{}, times: map[int64]bool{}}
	record.Step["Subresource"], record.Step["Manager"] = f.subresource, manager
	record.Step["Object"], record.Done["live"] = copied(object), copied(live)
	record.Done["object"], record.Done["sent"] = copied(object), "as they are"
	if accessor, err := meta.Accessor(object); err == nil && isResetManagedFields(accessor.GetManagedFields()) {
		record.Done["sent"] = "reset"
	}
	for _, of := range []runtime.Object{live, object} {
		for _, entry := range entriesOf(of) {
			if entry.Time != nil {
				record.times[entry.Time.Unix()] = true
			}
		}
	}
	return record
}

func (r *recorded) write(result runtime.Object, err error) {
	if r == nil {
		return
	}
	now := time.Now()
	switch {
	case err != nil:
		r.Done["error"] = told(err)
	default:
		r.Done["result"] = copied(result)
		for _, entry := range entriesOf(result) {
			if entry.Time != nil && !r.times[entry.Time.Unix()] {
				now = entry.Time.Time
			}
		}
	}
	r.Done["now"] = now.UTC().Format(time.RFC3339)
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	recordLock.Lock()
	defer recordLock.Unlock()
	if recordFile == nil {
		if recordFile, err = os.OpenFile(os.Getenv("RECORD_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			panic(err)
		}
	}
	if _, err := recordFile.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}

func told(err error) any {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return known.Status()
	}
	return map[string]any{"message": err.Error()}
}

func entriesOf(object runtime.Object) []metav1.ManagedFieldsEntry {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	return accessor.GetManagedFields()
}

// copied is an object as it is now.
func copied(object runtime.Object) json.RawMessage {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}
