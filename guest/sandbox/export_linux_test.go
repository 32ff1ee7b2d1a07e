package sandbox

// JoinGroups puts a process into control groups of its own with limits.
func JoinGroups(pid int, l Limits) (leave func() error, err error) {
	made, err := joinGroups(cgroupRoot, pid, l)
	return func() error { return removeGroups(made) }, err
}

// SetControlGroups sets the directory of control groups.
func (s *System) SetControlGroups(dir string) { s.cgroups = dir }
