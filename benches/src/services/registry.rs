//! The servers, in the order of the tables.

use crate::services::servers::{go, memcached, nginx, node, postgres, redis};
use crate::services::service::Service;

/// Every server.
pub(crate) static SERVICES: [&Service; 6] = [
    &go::SERVICE,
    &node::SERVICE,
    &nginx::SERVICE,
    &redis::SERVICE,
    &memcached::SERVICE,
    &postgres::SERVICE,
];

/// Returns the server of this name.
pub(crate) fn service(name: &str) -> Option<&'static Service> {
    SERVICES.into_iter().find(|one| one.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_by_its_name() {
        for one in SERVICES {
            assert!(std::ptr::eq(service(one.name).unwrap(), one), "{}", one.name);
        }
        assert!(service("httpd").is_none());
    }

    #[test]
    fn a_rare_call_is_not_the_one_that_answers() {
        for one in SERVICES {
            assert_ne!(one.rare_call, one.answer.name, "{}", one.name);
            assert!(one.aim.is_none_or(|aim| aim < one.most), "{}", one.name);
        }
    }
}
