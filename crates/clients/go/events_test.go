// Recorders of events, in both of their APIs: what is told twice becomes one event that counts.

package clients

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	eventrecord "k8s.io/client-go/tools/record"
)

func (c *clients) podOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace, UID: types.UID("uid-of-" + name)}}
}

func TestCoreEventsAreCounted(t *testing.T) {
	c := start(t, "events-core")
	broadcaster := eventrecord.NewBroadcaster(eventrecord.WithContext(c.ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.typed.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester", Host: "host-1"})
	for range 3 {
		recorder.Event(c.podOf("a"), corev1.EventTypeWarning, "Slow", "it is slow")
	}
	recorder.Eventf(c.podOf("b"), corev1.EventTypeNormal, "Done", "%d of %d", 2, 2)
	c.until("one event that counts to three, and another", func() (bool, string) {
		list, err := c.typed.CoreV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=a,reason=Slow"})
		must(t, err)
		other, err := c.typed.CoreV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=uid-of-b"})
		must(t, err)
		text := ""
		for _, event := range append(list.Items, other.Items...) {
			text += fmt.Sprintln(event.InvolvedObject.Name, event.Type, event.Reason, event.Message, event.Count, event.Source.Component, event.ReportingController)
		}
		return text == "a Warning Slow it is slow 3 tester tester\nb Normal Done 2 of 2 1 tester tester\n", text
	})
}

func TestEventsBecomeSeries(t *testing.T) {
	c := start(t, "events-series")
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.typed.EventsV1()})
	must(t, broadcaster.StartRecordingToSinkWithContext(c.ctx))
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "forebay.test/tester")
	list := func() []eventsv1.Event {
		list, err := c.typed.EventsV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{})
		must(t, err)
		return list.Items
	}
	tell := func() {
		recorder.Eventf(c.podOf("a"), c.podOf("b"), corev1.EventTypeNormal, "Moved", "Moving", "from %s to %s", "a", "b")
	}
	tell()
	c.until("the first event", func() (bool, string) { all := list(); return len(all) == 1 && all[0].Series == nil, fmt.Sprint(all) })
	tell()
	c.until("the event becomes a series", func() (bool, string) {
		all := list()
		return len(all) == 1 && all[0].Series != nil && all[0].Series.Count == 2, fmt.Sprint(all)
	})
	event := list()[0]
	if event.Regarding.Name != "a" || event.Related.Name != "b" || event.Note != "from a to b" || event.Action != "Moving" || event.EventTime.IsZero() {
		t.Fatalf("the event is %+v", event)
	}
	// The same object, as the older API has it.
	older, err := c.typed.CoreV1().Events(c.namespace).Get(c.ctx, event.Name, metav1.GetOptions{})
	must(t, err)
	if older.UID != event.UID || older.InvolvedObject.Name != "a" || older.Message != "from a to b" || older.ReportingController != "forebay.test/tester" || older.Series.Count != 2 {
		t.Fatalf("the older event is %+v", older)
	}
}
