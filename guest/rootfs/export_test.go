package rootfs

// SetStep calls f with the name of each step of an unpacking or removal.
func (c *Cache) SetStep(f func(string)) { c.step = f }
