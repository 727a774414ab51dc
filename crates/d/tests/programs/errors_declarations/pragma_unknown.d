#pragma once
BEGIN
