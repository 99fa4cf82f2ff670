package merge

import (
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/internal/record"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// recordingConverter keeps what was converted to what.
type recordingConverter struct {
	inner Converter
	calls *[]any
}

func (c recordingConverter) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	result, err := c.inner.Convert(object, version)
	call := map[string]any{"from": typed.RecordTyped(object), "version": version}
	switch {
	case err == nil:
		call["to"] = typed.RecordTyped(result)
	case c.inner.IsMissingVersionError(err):
		call["missing"] = true
	default:
		call["error"] = err.Error()
	}
	*c.calls = append(*c.calls, call)
	return result, err
}

func (c recordingConverter) IsMissingVersionError(err error) bool {
	return c.inner.IsMissingVersionError(err)
}

// recorded is an updater that keeps what it converts, and what it is asked.
func (s *Updater) recorded(operation string, live, object *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string) (*Updater, record.Fields, *[]any) {
	calls := &[]any{}
	copied := *s
	copied.Converter = recordingConverter{s.Converter, calls}
	filters := map[fieldpath.APIVersion]any{}
	for version, set := range s.IgnoredFields {
		filters[version] = map[string]any{"exclude": fieldpath.RecordSet(set)}
	}
	for version, filter := range s.IgnoreFilter {
		filters[version] = fieldpath.RecordFilter(filter)
	}
	return &copied, record.Fields{
		"operation": operation, "live": typed.RecordTyped(live), "object": typed.RecordTyped(object), "version": version,
		"managers": fieldpath.RecordManagers(managers), "manager": manager, "filters": filters,
	}, calls
}

func recordResult(fields record.Fields, calls *[]any, object *typed.TypedValue, managers fieldpath.ManagedFields, err error) {
	fields["conversions"] = *calls
	conflicts, isConflict := err.(Conflicts)
	switch {
	case isConflict:
		// Upstream's order is that of a map.
		sort.SliceStable(conflicts, func(i, j int) bool { return conflicts[i].Manager < conflicts[j].Manager })
		all := []any{}
		for _, conflict := range conflicts {
			all = append(all, []any{conflict.Manager, fieldpath.RecordPath(conflict.Path)})
		}
		fields["conflicts"] = all
		fields["error"] = err.Error()
	case err != nil:
		fields["error"] = err.Error()
	default:
		fields["result"] = fieldpath.RecordManagers(managers)
		if object != nil {
			fields["merged"] = typed.RecordTyped(object)
		}
	}
	record.Write("updater", fields)
}

func (s *Updater) Update(live, new *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	if !record.Wants("updater") {
		return s.upstreamUpdate(live, new, version, managers, manager)
	}
	recorded, fields, calls := s.recorded("update", live, new, version, managers, manager)
	object, owned, err := recorded.upstreamUpdate(live, new, version, managers, manager)
	recordResult(fields, calls, object, owned, err)
	return object, owned, err
}

func (s *Updater) Apply(live, config *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string, force bool) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	if !record.Wants("updater") {
		return s.upstreamApply(live, config, version, managers, manager, force)
	}
	recorded, fields, calls := s.recorded("apply", live, config, version, managers, manager)
	fields["force"] = force
	fields["returnInputOnNoop"] = s.returnInputOnNoop
	object, owned, err := recorded.upstreamApply(live, config, version, managers, manager, force)
	recordResult(fields, calls, object, owned, err)
	return object, owned, err
}

// sortedVersions is the one of the orders that upstream may take in which this is done here as well.
func sortedVersions(sets map[fieldpath.APIVersion]*fieldpath.Set) []fieldpath.APIVersion {
	versions := []fieldpath.APIVersion{}
	for version := range sets {
		versions = append(versions, version)
	}
	sort.Slice(versions, func(i, j int) bool { return versions[i] < versions[j] })
	return versions
}
