"""The worker's machinery. It sees a store only as `tenure.driver.Driver`."""
